/* SPDX-License-Identifier: MIT */
#include "analysis/php_layout.h"

const struct php_layout php_layouts[] = {
	{
		.api = 20190902,	/* 7.4 */
		.indirect = 13, .pointer = 14, .packed = 32,
		.map_twice = true,
		.functions = 432, .stack = 456, .frame = 488,
		.resources = 560, .handlers = 680, .objects = 840,
		.arena = 384, .map_base = 528,
		.n_props = 32, .props = 40,
		.function_size = 224, .n_vars = 52, .temps = 56,
		.opcodes = 64, .vars = 96, .statics = 88, .live = 120,
		.file = 136, .property_class = 24, .constant_class = 24,
		.generator_frame = 64, .generator_value = 80,
		.resource = 16,
	}, {
		.api = 20220829,	/* 8.2 */
		.indirect = 12, .pointer = 13, .packed = 16,
		.functions = 432, .stack = 456, .frame = 488,
		.resources = 560, .handlers = 680, .objects = 840,
		.arena = 328, .map_base = 480,
		.n_props = 32, .props = 40,
		.function_size = 248, .n_vars = 76, .temps = 56,
		.opcodes = 88, .vars = 112, .statics = 104, .live = 136,
		.file = 152, .n_inner = 180, .inner = 192,
		.property_class = 32, .constant_class = 32,
		.generator_frame = 56, .generator_value = 72,
		.fiber_stack = 296, .resource = 24,
	}, {
		.api = 20240924,	/* 8.4 */
		.indirect = 12, .pointer = 13, .packed = 16,
		.functions = 432, .stack = 456, .frame = 488,
		.resources = 584, .handlers = 704, .objects = 856,
		.arena = 360, .map_base = 512,
		.n_props = 32, .props = 40,
		.function_size = 256, .n_vars = 92, .temps = 72,
		.opcodes = 104, .vars = 128, .statics = 120, .live = 152,
		.file = 168, .n_inner = 188, .inner = 200,
		.property_class = 32, .constant_class = 32,
		.generator_frame = 56, .generator_value = 72,
		.fiber_stack = 304, .resource = 24,
	}, {
		.api = 20250925,	/* 8.5 */
		.indirect = 12, .pointer = 13, .packed = 16,
		.functions = 456, .stack = 480, .frame = 512,
		.resources = 608, .handlers = 728, .objects = 880,
		.arena = 360, .map_base = 512,
		.n_props = 32, .props = 40,
		.function_size = 256, .n_vars = 92, .temps = 72,
		.opcodes = 104, .vars = 128, .statics = 120, .live = 152,
		.file = 168, .n_inner = 188, .inner = 200,
		.property_class = 32, .constant_class = 32,
		.generator_frame = 56, .generator_value = 72,
		.fiber_stack = 304, .resource = 24,
	}, {
		.api = 20260924,	/* 8.6 */
		.indirect = 12, .pointer = 13, .packed = 16,
		.functions = 456, .stack = 480, .frame = 512,
		.resources = 656, .handlers = 776, .objects = 928,
		.arena = 360, .map_base = 512,
		.n_props = 36, .props = 48,
		.function_size = 256, .n_vars = 92, .temps = 72,
		.opcodes = 104, .vars = 128, .statics = 120, .live = 152,
		.file = 168, .n_inner = 188, .inner = 200,
		.property_class = 32, .constant_class = 32,
		.generator_frame = 56, .generator_value = 72,
		.fiber_stack = 304, .resource = 24,
	},
	{ 0 }
};

const struct php_layout *php_layout(uint32_t api)
{
	for (const struct php_layout *l = php_layouts; l->api; l++)
		if (l->api == api)
			return l;
	return NULL;
}
