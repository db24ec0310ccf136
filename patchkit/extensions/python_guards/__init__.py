"""What holds between Python components: functions that one replaces in another while it runs
(`overrides`), calls from one into another (`contracts`), several layers on one function.

Source is read as it is; nothing is imported or run. `modules` has the modules of a tree, `resolve`
what a dotted name leads to, `value_flow` what an expression comes to, `inference` what an
expression is, `callables` how something is called.
"""
