"""Which language a text is in, by a light rule: the script, and for Latin letters the commonest short words.

For reports and a search filter, where a guess that is right for nearly all postings is enough; nothing that is
stored hangs on it. docs/quality.md has how often it is right.
"""

from __future__ import annotations

import re
from collections import Counter

UNKNOWN = "und"
"""ISO 639-2 for undetermined: no letters, or too few known words."""

_LOOKED_AT = 3000  # code points; more changes hardly any answer

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]+"),
    "ko": re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]+"),
    "zh": re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+"),
    "ru": re.compile(r"[\u0400-\u04ff]+"),
    "ar": re.compile(r"[\u0600-\u06ff]+"),
    "he": re.compile(r"[\u0590-\u05ff]+"),
    "am": re.compile(r"[\u1200-\u139f]+"),
    "th": re.compile(r"[\u0e00-\u0e7f]+"),
    "hi": re.compile(r"[\u0900-\u097f]+"),
    "el": re.compile(r"[\u0370-\u03ff]+"),
}
# A character of these scripts says about as much as so many letters.
_WEIGHTS = {"ja": 3.0, "ko": 3.0, "zh": 3.0}
# Postings are full of English names of tools: another script wins with less than half of the letters.
_SHARE_OF_OTHER_SCRIPT = 0.25
_KANA_IN_JAPANESE = 0.1  # of kana and Han together

_WORD = re.compile(r"[^\W\d_]+")
_SHORT_WORDS = {
    "en": "the and of to in for with you we our is are as on or will be your that have from this by at",
    "de": "und der die das für mit wir du sie ist ein eine von zu im auf den dem bei oder sich werden nicht",
    "fr": "et de la le les des du une un vous nous pour dans est sur avec au aux votre notre qui ou que ce sont",
    "es": "de y la el los las en para con que una un del se por su al como es o más nuestro trabajo serás años",
    "pt": "de e a o os as em para com que uma um do da dos das no na por se ao como é ou mais você não são nos",
    "it": "di e il la le gli per con che una un del della dei delle nel è si al come sono più lavoro nostro da",
    "nl": "de het een en van voor met je wij we ons is zijn op aan in dat bij naar ook niet jouw onze als te",
    "pl": "i w z na do się oraz dla jest nie od pracy że o po za przez jako lub ze to są będzie twoje",
    "sv": "och att i en ett det som för med på är av vi du till har om kan din vår inom eller hos",
    "tr": "ve bir bu için ile olarak da de olan en çok daha gibi veya iş deneyim ekip olan şirket",
    "vi": "và các có của cho công việc với được trong là tại kinh nghiệm làm thể năng theo khách hàng",
    "fi": "ja on että se olet meillä sinulla tai kun ovat työ kanssa myös sekä joka mutta sinun",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _SHORT_WORDS.items():
    for _word in set(_words.split()):
        _LANGUAGES_OF.setdefault(_word, []).append(_language)
_FEWEST_KNOWN = 0.04  # of all words, for the commonest language


def detect_language(text: str) -> str:
    """The ISO 639-1 code of the language of most of `text`, or UNKNOWN. Pure; about a millisecond."""
    text = text[:_LOOKED_AT]
    if text.isascii():
        return _by_words(text)
    letters = {name: sum(map(len, script.findall(text))) for name, script in _SCRIPTS.items()}
    weights = {name: count * _WEIGHTS.get(name, 1.0) for name, count in letters.items()}
    other = sum(weights.values())
    if other <= _SHARE_OF_OTHER_SCRIPT * (other + sum(map(len, _LATIN.findall(text)))):
        return _by_words(text)
    if letters["ja"] > _KANA_IN_JAPANESE * (letters["ja"] + letters["zh"]):
        return "ja"
    return max(weights, key=lambda name: weights[name] if name != "ja" else 0.0)


def _by_words(text: str) -> str:
    words = _WORD.findall(text.lower())
    votes = Counter(language for word in words for language in _LANGUAGES_OF.get(word, ()))
    if not votes:
        return UNKNOWN
    language, count = votes.most_common(1)[0]
    return language if count >= _FEWEST_KNOWN * len(words) else UNKNOWN
