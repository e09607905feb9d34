# SPDX-License-Identifier: MIT
"""Instances of many kinds of classes; says how many of each, and dies."""
import abc
import collections
import gc
import os
import sys


class Node:
    def __init__(self, i):
        self.i = i
        self.next = None


class Slots:
    __slots__ = ('a', 'b')

    def __init__(self, i):
        self.a = i
        self.b = str(i)


class Bare:
    __slots__ = ()


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        """Of one kind."""


class Square(Shape):
    def area(self):
        return 1


class Table(dict):
    pass


class Row(list):
    pass


class Text(str):
    pass


class Number(int):
    pass


class Wrong(Exception):
    pass


class Outer:
    class Inner:
        pass


Point = collections.namedtuple('Point', 'x y')
made = [type('Made%d' % i, (), {}) for i in range(200)]
kept = [Node(i) for i in range(20001)] + [Slots(i) for i in range(3001)]
kept += [Bare() for i in range(777)] + [Square() for i in range(555)]
kept += [Table(a=i) for i in range(444)] + [Row([i]) for i in range(333)]
kept += [Text('text %d' % i) for i in range(222)]
kept += [Number(i) for i in range(111)] + [Wrong(i) for i in range(99)]
kept += [Outer.Inner() for i in range(88)]
kept += [Point(i, i) for i in range(77)]
kept += [made[i % 200]() for i in range(4000)]
kept += [collections.OrderedDict() for i in range(66)]
gc.collect()
count = collections.Counter(type(i).__module__ + '.' + type(i).__name__
                            for i in kept if type(i).__module__ == '__main__')
for name in sorted(count):
    print('said', name, count[name])
sys.stdout.flush()
os.abort()
