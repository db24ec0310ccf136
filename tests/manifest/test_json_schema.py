"""The JSON Schema: fresh, valid, and of one mind with the loader as far as JSON Schema goes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from patchkit.manifest.json_schema import json_schema
from patchkit.manifest.keys import record_of
from patchkit.manifest.load import inspect_manifest
from patchkit.manifest.types import Choice, DependentShape, Field, ListOf, MapOf, Record, Shape
from patchkit.manifest.values import Manifest
from tests.support.schemas import jsonschema

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data" / "manifests"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
INVALID = sorted((DATA / "invalid").glob("*.yaml"))
VALID = sorted((DATA / "valid").glob("*.yaml"))

#: Mistakes that a JSON Schema cannot see: in YAML's notation, between values, or in other files.
_UNSEEN = """
    anchor merge_key tag key_boolean key_number carriage_return_alone zero_width_space
    text_direction_override description_escape
    duplicate_component duplicate_key_pin duplicate_key_top duplicate_variable version_twice
    component_name_number component_name_dots component_name_lock component_name_reserved
    strip_float strip_hex strip_octal strip_underscore version_float
    checkout_is_other_component checkout_reserved checkout_same checkout_same_but_case
    extends_broken_part extends_circle extends_conflicting_checkout extends_incomplete_component
    extends_itself extends_missing_file extends_outside extends_part_with_problems
    extends_part_without_version extends_too_deep
    patch_file_name_not_a_patch_name patch_local_url patch_of_index_component patch_of_itself
    patch_of_unknown_component patch_twice patch_twice_other_folder patch_twice_pinned
    of_without_branch
    launch_list_behind_equals launch_of_unknown_component launch_reference_unknown
    contracts_package_twice contracts_true_and_false overrides_target
    reference_in_component reference_malformed reference_open reference_to_nothing
    reference_unknown variable_and_path
    series_shared series_twice subdirectory_git track_dots
    version_name_twice version_and_unsupported
    version_specifier_compatible_one version_specifier_wildcard_range
"""
UNSEEN = frozenset(_UNSEEN.split())


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft7Validator(json_schema())


def parsed(path: Path) -> Any:
    """What a plain YAML reader makes of the file."""
    return yaml.load(path.read_bytes(), Loader=LOADER)


def is_yaml(path: Path) -> bool:
    """Whether a plain YAML reader takes the file, so that a schema has something to look at."""
    try:
        parsed(path)
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    return True


@pytest.mark.parametrize("part", [False, True])
def test_the_schema_is_a_schema(part: bool) -> None:
    jsonschema.Draft7Validator.check_schema(json_schema(part=part))


def test_valid_manifests_and_parts_are_accepted(validator: Any) -> None:
    part = jsonschema.Draft7Validator(json_schema(part=True))
    schemas = dict.fromkeys(VALID, validator)
    schemas |= dict.fromkeys(sorted((DATA / "valid" / "parts").iterdir()), part)
    errors = [(p.stem, e.message) for p, s in schemas.items() for e in s.iter_errors(parsed(p))]
    assert errors == []


@pytest.mark.slow
def test_mistakes_are_refused_as_far_as_a_schema_sees(validator: Any) -> None:
    """All but the ones above, and these are mistakes that there are."""
    accepted = {path.stem for path in INVALID if is_yaml(path) and validator.is_valid(parsed(path))}
    assert accepted == UNSEEN


@pytest.mark.parametrize("path", sorted((ROOT / "manifests").glob("*.yaml")), ids=lambda p: p.stem)
def test_shipped_manifests_are_accepted_and_name_the_schema(path: Path, validator: Any) -> None:
    assert validator.is_valid(parsed(path))
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first == "# yaml-language-server: $schema=../docs/manifest.schema.json"


EXAMPLES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/manifest.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_page_are_right(text: str, validator: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    if "components:" not in text:  # a part
        (tmp_path / "part.yaml").write_text(text)
        text = (DATA / "valid" / "minimal.yaml").read_text() + "extends: [part.yaml]\n"
    path.write_text(text)
    assert inspect_manifest(path).problems == ()
    assert validator.is_valid(parsed(path))


def test_every_key_is_described() -> None:
    fields = list(_fields(record_of(Manifest)))
    assert len(fields) > 30
    assert [field.key for field in fields if not field.description.endswith(".")] == []


def _fields(shape: Shape) -> list[Field]:
    match shape:
        case Record():
            return [each for f in shape.fields for each in (f, *_fields(f.shape))]
        case Choice():
            return [each for option in shape.options for each in _fields(option)]
        case DependentShape():
            return [each for inner in shape.shapes.values() for each in _fields(inner)]
        case ListOf() | MapOf():
            return _fields(shape.of)
        case _:
            return []


def test_the_schema_is_what_editors_can_read() -> None:
    text = json.dumps(json_schema())
    assert "(?P<" not in text, "Python's named groups are no JavaScript"
