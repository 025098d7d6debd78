"""Which parts of a line of code have which colour: comments, texts, numbers, names and keywords.

One rough grammar serves all languages; what differs is how a comment begins and which words are
keywords.  Each line stands alone, so only lines in view are ever read, and one expression walks
through it without coming back from far, because code comes from strangers.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from msgspec import Struct


class CodeRole(Enum):
    QUIET = auto()
    """Comments and times."""
    TEXT = auto()
    NUMBER = auto()
    NAME = auto()
    """Keywords, and what is given a value: ``level`` in ``level=2.41``."""


class ColouredPart(Struct, frozen=True):
    """``start`` and ``end`` are indexes into the line."""

    role: CodeRole
    start: int
    end: int


_HASH = (
    "bash,conf,docker,dockerfile,ini,make,makefile,perl,py,python,r,rb,ruby,sh,toml,yaml,yml,zsh"
)
_SLASHES = (
    "c,c#,c++,cpp,cs,css,dart,go,h,hpp,java,javascript,js,json,jsonc,jsx,kotlin,kt,php,proto,"
    "qml,rs,rust,scala,scss,swift,ts,tsx,typescript,zig"
)
_DASHES = "elm,haskell,hs,lua,sql"
_COMMENTS: Final = (
    dict.fromkeys(_HASH.split(","), "#")
    | dict.fromkeys(_SLASHES.split(","), "//")
    | dict.fromkeys(_DASHES.split(","), "--")
)
_KEYWORD_LIST = (
    "abstract,and,as,assert,async,await,begin,bool,boolean,break,byte,case,catch,char,class,"
    "const,continue,create,def,default,defer,delete,do,done,double,echo,elif,else,end,enum,"
    "esac,except,export,extends,extern,false,fi,final,finally,float,fn,for,from,func,function,"
    "global,go,goto,if,impl,implements,import,in,inner,insert,int,interface,into,is,join,"
    "lambda,let,local,long,loop,match,mod,mut,namespace,new,nil,none,not,null,or,order,"
    "package,pass,private,protected,pub,public,raise,ref,return,select,self,set,short,signed,"
    "sizeof,static,str,string,struct,super,switch,table,template,then,this,throw,trait,true,"
    "try,type,typedef,typeof,union,unless,unsigned,until,update,use,using,values,var,virtual,"
    "void,volatile,when,where,while,with,yield"
)
_KEYWORDS: Final = frozenset(_KEYWORD_LIST.split(","))
_LONGEST_QUOTED = 40
"""Between single quotes: more often they are apostrophes."""


@lru_cache(maxsize=64)
def _tokens(language: str) -> re.Pattern[str]:
    mark = _COMMENTS.get(language)
    comment = "" if mark is None else rf"(?P<comment>(?<![^\s;)}}]){re.escape(mark)}.*)|"
    return re.compile(
        comment
        + r"(?P<text>\"(?:[^\"\\]|\\.)*\"?"
        + rf"|'(?:[^'\\]|\\.){{0,{_LONGEST_QUOTED}}}'(?!\w))"
        r"|(?P<time>\b\d{4}-\d\d-\d\d\b|\b\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\b)"
        r"|(?P<number>\b\d[\w.]*)"
        r"|(?P<word>[^\W\d][\w]*)"
    )


def coloured(line: str, language: str) -> Iterator[ColouredPart]:
    """The coloured parts of ``line``, ascending; everything else has the colour of text."""
    for token in _tokens(language if language in _COMMENTS else "").finditer(line):
        start, end = token.span()
        match token.lastgroup:
            case "comment" | "time":
                yield ColouredPart(CodeRole.QUIET, start, end)
            case "text":
                yield ColouredPart(CodeRole.TEXT, start, end)
            case "number":
                yield ColouredPart(CodeRole.NUMBER, start, end)
            case _:
                if _is_name(token, line, language):
                    yield ColouredPart(CodeRole.NAME, start, end)


def _is_name(word: re.Match[str], line: str, language: str) -> bool:
    after = line[word.end() : word.end() + 2]
    if after[:1] == "=" and after != "==":
        return True
    return bool(language) and word[0].lower() in _KEYWORDS
