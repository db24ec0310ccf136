"""Say why a patch does not apply: what it expects, what is there, where its lines are now.

`git apply` says "patch does not apply". What a person does next depends on the reason, so we look
for it: lines changed, lines moved, file renamed, change made already, line ends, a renaming that
went over the patch, a patch made for another base. Nothing here decides whether a patch applies;
that is the stack's verdict, and this only explains a bad one.
"""
