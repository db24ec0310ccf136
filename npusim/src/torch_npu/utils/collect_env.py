"""torch_npu.utils.collect_env."""


def get_cann_version() -> str:
    """The CANN that the stacks are for; there is none here."""
    return "8.5.0"
