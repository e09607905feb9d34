# SPDX-License-Identifier: MIT
"""Many copies of some strings; says what sharing them would save, and dies."""
import os
import sys

names = ['customer number %d is not known' % i for i in range(100)]
kept = [''.join([name, '!']) for name in names for _ in range(1000)]
kept += [b'payload of %d bytes' % i for i in range(10) for _ in range(1000)]
once = {text: text for text in kept}


def block(text):
    """What pymalloc takes for it."""
    return (sys.getsizeof(text) + 15) // 16 * 16


print('said', sum(map(block, kept)) - sum(map(block, once)))
sys.stdout.flush()
os.abort()
