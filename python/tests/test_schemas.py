"""`schemas/` against real files: the records of this repository, and what the commands print."""

import copy
import json
import subprocess

import pytest

from conftest import FLATOUT, ROOT, environment, flatout, need

jsonschema = need("jsonschema")

SCHEMAS = ROOT / "schemas"
RECORDS = sorted({path.parent for folder in ("faults", "tests/data") for path in (ROOT / folder).glob("**/run.json")})
# Lines of each file that are checked: the first ones, the last one, and some between.
MOST = 40


def strict(schema):
    """Every field must be described: a field that no schema knows is one that nobody can rely on."""
    schema = copy.deepcopy(schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part or "oneOf" in part and all("properties" in one for one in part["oneOf"]):
            part.setdefault("additionalProperties" if "oneOf" not in part and "allOf" not in part else "unevaluatedProperties", False)
    return jsonschema.Draft202012Validator(schema)


def validator(name):
    return strict(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


VALIDATORS = {path.relative_to(SCHEMAS).as_posix()[: -len(".schema.json")]: validator(path.relative_to(SCHEMAS).as_posix()[: -len(".schema.json")]) for path in SCHEMAS.glob("**/*.schema.json")}


def check(name, value, where):
    errors = [f"{where} at {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in VALIDATORS[name].iter_errors(value)]
    assert not errors, errors[:5]


def some(lines):
    step = max(1, len(lines) // MOST)
    return [*lines[::step], *lines[-1:]]


def test_schemas_are_schemas():
    assert len(VALIDATORS) >= 14
    for found in VALIDATORS.values():
        jsonschema.Draft202012Validator.check_schema(found.schema)


def test_unknown_and_wrong_fields_are_refused():
    run = json.loads((RECORDS[0] / "run.json").read_text())
    assert VALIDATORS["record/run"].is_valid(run)
    assert not VALIDATORS["record/run"].is_valid({**run, "surprise": 1})
    assert not VALIDATORS["record/run"].is_valid({**run, "schema": "one"})
    assert not VALIDATORS["flatout.toml"].is_valid({"lint": {"selekt": []}})


@pytest.mark.parametrize("name", ["run", "profile"])
def test_single_files_of_records(name):
    for record in RECORDS:
        path = record / f"{name}.json"
        if path.exists():
            check(f"record/{name}", json.loads(path.read_text()), path)


@pytest.mark.parametrize("name", ["facts", "steps", "events", "stacks", "lines", "windows", "timeline"])
def test_lines_of_records(name):
    checked = 0
    for record in RECORDS:
        path = record / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        for line in some(lines):
            check(f"record/{name}", json.loads(line), path)
            checked += 1
    # No record of the repository was made with timelines yet.
    assert checked > 10 or name == "timeline", checked


def test_first_samples_of_records():
    for record in RECORDS:
        path = record / "samples.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        if lines:
            check("record/samples", json.loads(lines[0]), path)


def printed(folder, *arguments):
    flatout()
    done = subprocess.run([str(FLATOUT), *arguments], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("record", some(RECORDS)[:12], ids=lambda record: record.parent.name)
def test_diagnosis(tmp_path, record):
    check("diagnosis", printed(tmp_path, "diagnose", str(record), "--json"), record)


def test_lint(tmp_path):
    found = printed(tmp_path, "lint", "--format", "json", str(ROOT / "crates/flatout-lint/tests/fixtures/captcha"))
    assert found["findings"]
    check("lint", found, "lint")


def test_rules(tmp_path):
    check("rules", printed(tmp_path, "explain", "--list", "--json"), "explain")
