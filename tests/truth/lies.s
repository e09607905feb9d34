# SPDX-License-Identifier: MIT
# Debug information that lies, of the variable "root": types that lead to
# themselves in every way, members outside their structure, sizes that
# overflow.  DWARF 4; assembled with a program that has the variable.
	.macro attribute name, form
	.uleb128 \name
	.uleb128 \form
	.endm
	.macro abbreviation code, tag, children
	.uleb128 \code
	.uleb128 \tag
	.byte \children
	.endm
	.macro end_abbreviation
	.byte 0, 0
	.endm

	.section .debug_abbrev,"",@progbits
.Labbrev:
	abbreviation 1, 0x11, 1		# compile unit
	attribute 0x13, 0x05		# language
	end_abbreviation
	abbreviation 2, 0x34, 0		# variable
	attribute 0x03, 0x08		# name
	attribute 0x49, 0x13		# type
	attribute 0x02, 0x18		# location
	end_abbreviation
	abbreviation 3, 0x16, 0		# typedef
	attribute 0x03, 0x08
	attribute 0x49, 0x13
	end_abbreviation
	abbreviation 4, 0x0f, 0		# pointer
	attribute 0x49, 0x13
	end_abbreviation
	abbreviation 5, 0x13, 1		# structure
	attribute 0x03, 0x08
	attribute 0x0b, 0x07		# byte size, data8
	end_abbreviation
	abbreviation 6, 0x0d, 0		# member
	attribute 0x03, 0x08
	attribute 0x49, 0x13
	attribute 0x38, 0x07		# place, data8
	end_abbreviation
	abbreviation 7, 0x01, 1		# array
	attribute 0x49, 0x13
	end_abbreviation
	abbreviation 8, 0x21, 0		# range
	attribute 0x37, 0x07		# count, data8
	end_abbreviation
	abbreviation 9, 0x1c, 0		# base class
	attribute 0x49, 0x13
	attribute 0x38, 0x07
	end_abbreviation
	.byte 0

	.section .debug_info,"",@progbits
.Linfo:
	.long .Lend - .Lstart
.Lstart:
	.short 4
	.long .Labbrev
	.byte 8
	.uleb128 1
	.short 0x0c
.Lself:				# a name of itself
	.uleb128 3
	.asciz "self"
	.long .Lself - .Linfo
.Lring:				# a pointer to a pointer to itself
	.uleb128 4
	.long .Lring2 - .Linfo
.Lring2:
	.uleb128 4
	.long .Lring - .Linfo
.Lnested:			# an array of itself, of 2^40 elements
	.uleb128 7
	.long .Lnested - .Linfo
	.uleb128 8
	.quad 0x10000000000
	.byte 0
.Lwide:				# an array of so many structures
	.uleb128 7
	.long .Lnode - .Linfo
	.uleb128 8
	.quad 0x7fffffff
	.byte 0
.Lnode:				# holds itself, and what is outside
	.uleb128 5
	.asciz "node"
	.quad 40
	.uleb128 9
	.long .Lnode - .Linfo
	.quad 0
	.uleb128 6
	.asciz "me"
	.long .Lnode - .Linfo
	.quad 0
	.uleb128 6
	.asciz "outside"
	.long .Lpointer - .Linfo
	.quad 0xfffffffffffffff8
	.uleb128 6
	.asciz "many"
	.long .Lwide - .Linfo
	.quad 8
	.uleb128 6
	.asciz "next"
	.long .Lpointer - .Linfo
	.quad 8
	.uleb128 6
	.asciz "nothing"
	.long 0x7fffffff
	.quad 16
	.byte 0
.Lpointer:
	.uleb128 4
	.long .Lnode - .Linfo
.Lhuge:
	.uleb128 5
	.asciz "huge"
	.quad 0xffffffffffffffff
	.uleb128 6
	.asciz "many"
	.long .Lwide - .Linfo
	.quad 0
	.byte 0
	.macro variable name, type
	.uleb128 2
	.asciz "\name"
	.long \type - .Linfo
	.uleb128 9
	.byte 3
	.quad root
	.endm
	variable a, .Lself
	variable b, .Lring
	variable c, .Lnested
	variable d, .Lwide
	variable e, .Lpointer
	variable f, .Lhuge
	variable g, .Lnode
	.byte 0
.Lend:
	.section .note.GNU-stack,"",@progbits
