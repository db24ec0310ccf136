"""Every patched function that decides about the device: on CUDA, on an NPU, and turned round."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stack_tests import megatron_scenarios, sglang_scenarios, slime_scenarios
from stack_tests.conftest import Stack
from stack_tests.devices import Scenario

GIT = (
    *slime_scenarios.SCENARIOS,
    *sglang_scenarios.SCENARIOS,
    *megatron_scenarios.SCENARIOS,
)
NEXT = (
    *slime_scenarios.SCENARIOS_0_3_1,
    *sglang_scenarios.SCENARIOS_0_5_15,
    *megatron_scenarios.SCENARIOS[:3],
)


@dataclass(frozen=True)
class Case:
    """A scenario on a stack that has its checkout."""

    scenario: Scenario
    stack: Stack

    def __call__(self, device: str, *, patched: bool = True, inverted: bool = False) -> object:
        """What happens."""
        return self.scenario.on(self.stack, device, patched=patched, inverted=inverted)


def _parameters() -> list[object]:
    return [
        *(
            pytest.param(("git_stack", each), marks=pytest.mark.upstream, id=str(each))
            for each in GIT
        ),
        *(
            pytest.param(("next_stack", each), marks=pytest.mark.upstream, id=f"next-{each}")
            for each in NEXT
        ),
        *(
            pytest.param(("index_stack", each), marks=pytest.mark.index, id=f"index-{each}")
            for each in (*megatron_scenarios.INDEX_SCENARIOS, *sglang_scenarios.SCENARIOS_0_5_9)
        ),
        *(
            pytest.param(("sglang_stack", each), marks=pytest.mark.index, id=f"0.5.8-{each}")
            for each in sglang_scenarios.SCENARIOS_0_5_8
        ),
    ]


@pytest.fixture(scope="session", params=_parameters())
def case(request: pytest.FixtureRequest) -> Case:
    """Every scenario in turn; skipped where its upstream cannot be fetched.

    Of the session, like the stacks: these are fetched before the environment is sealed for a test.
    """
    stack, scenario = request.param
    return Case(scenario, request.getfixturevalue(stack))


def test_on_cuda_it_does_what_upstream_does(case: Case) -> None:
    assert case("cuda") == case("cuda", patched=False)


def test_torch_npu_without_a_device_changes_nothing(case: Case) -> None:
    if case.scenario.loaded_counts:
        pytest.skip("goes by whether torch_npu is loaded")
    assert case("npu-hidden") == case("cuda", patched=False)


def test_on_an_npu_it_does_what_is_promised(case: Case) -> None:
    assert case("npu") == case.scenario.npu


def test_a_decision_turned_round_is_noticed_on_both(case: Case) -> None:
    assert case("cuda", inverted=True) != case("cuda", patched=False)
    assert case("npu", inverted=True) != case.scenario.npu
