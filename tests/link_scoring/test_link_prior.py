"""Link priors: shipped ones and files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from focused.errors import ConfigurationError
from focused.link_scoring.linear_model import (
    DEFAULT_PRIOR,
    PRIOR_FORMAT,
    list_shipped_priors,
    load_link_prior,
    uninformed_prior,
)
from focused.link_scoring.link_features import FEATURE_INDEX, FEATURE_NAMES


def content(**changed: Any) -> dict[str, Any]:
    prior_fields = {
        "format": PRIOR_FORMAT,
        "fitted_on": ["somewhere"],
        "examples": 100,
        "bias": -2.0,
        "weights": dict.fromkeys(FEATURE_NAMES, 0.5) | {"url": 0.25},
        "scales": dict.fromkeys(FEATURE_NAMES, 1.0) | {"anchor": 3.0},
    }
    return prior_fields | changed


def written(folder: Path, text: str | dict[str, Any]) -> Path:
    path = folder / "own.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def of_all_but(one: str, value: float = 1.0) -> dict[str, float]:
    return {name: value for name in FEATURE_NAMES if name != one}


@pytest.mark.parametrize("name", list_shipped_priors())
def test_every_shipped_prior_loads_and_knows_all_features(name):
    prior = load_link_prior(name)
    assert prior.name == name
    assert prior.fitted_on
    assert prior.weights.shape == prior.scales.shape == (len(FEATURE_NAMES),)
    assert np.isfinite(prior.weights).all()
    assert (prior.scales > 0).all()


def test_the_default_is_shipped():
    assert DEFAULT_PRIOR in list_shipped_priors()
    assert load_link_prior().name == DEFAULT_PRIOR


@pytest.mark.parametrize("web", ["docweb", "foldoc", "wordnet", "debian"])
def test_for_each_web_with_labels_there_is_a_prior_that_has_not_seen_it(web):
    assert web not in load_link_prior(f"without-{web}").fitted_on
    assert web in load_link_prior(DEFAULT_PRIOR).fitted_on


def test_weights_of_ones_own_are_put_in_the_features_order(tmp_path):
    prior = load_link_prior(written(tmp_path, content()))
    assert prior.weights[FEATURE_INDEX["url"]] == 0.25
    assert prior.scales[FEATURE_INDEX["anchor"]] == 3.0
    assert prior.bias == -2.0


def test_an_unknown_prior_raises_an_error_that_lists_the_shipped_ones(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no prior 'nonesuch'.*all-webs, without-"):
        load_link_prior("nonesuch")
    with pytest.raises(ConfigurationError, match=r"missing\.json"):
        load_link_prior(tmp_path / "missing.json")
    with pytest.raises(ConfigurationError, match="there is no prior"):
        load_link_prior(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no JSON", "not a link prior"),
        ("", "not a link prior"),
        ("[" * 100_000, "not a link prior"),
        ("[]", "not a link prior"),
        ("{}", "missing required field"),
        (content(more=1), "unknown field `more`"),
        (content(bias="low"), "Expected `float`"),
        (content(bias=float("nan")), "not a link prior"),
        (content(weights=dict.fromkeys(FEATURE_NAMES, float("nan"))), "not a link prior"),
        (content(weights=of_all_but("url")), r"weights do not fit .*\(url\)"),
        (content(scales=of_all_but("url")), r"scales do not fit .*\(url\)"),
        (content(weights=of_all_but("url") | {"hue": 1.0}), r"\(hue, url\)"),
        (content(scales=of_all_but("url") | {"url": 0.0}), "scales positive"),
        (content(scales=of_all_but("url") | {"url": -1.0}), "scales positive"),
        (
            content(format=PRIOR_FORMAT + 1),
            f"format {PRIOR_FORMAT + 1}, but this version reads {PRIOR_FORMAT}",
        ),
        (json.dumps(content()).replace("-2.0", "1e999"), "own.json"),
        (json.dumps(content()).replace("3.0", "1e999"), "own.json"),
    ],
)
def test_an_invalid_prior_file_raises_an_error_with_its_name(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError, match=message) as found:
        load_link_prior(path)
    assert str(path) in str(found.value)


def test_bytes_that_are_no_text_are_no_prior(tmp_path):
    path = tmp_path / "own.json"
    path.write_bytes(b'{"format": "\xff\xfe"}')
    with pytest.raises(ConfigurationError, match=r"own\.json: this is not a link prior"):
        load_link_prior(path)


def test_the_uninformed_prior_has_zero_weights_and_keeps_scales():
    prior = load_link_prior()
    none = uninformed_prior(prior)
    assert not none.weights.any()
    assert np.array_equal(none.scales, prior.scales)
    assert 0.05 < 1 / (1 + np.exp(-none.bias)) < 0.15
