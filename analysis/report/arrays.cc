// SPDX-License-Identifier: MIT
// Base64, because an HTML file must be text.
#include "arrays.h"

namespace forktail::analysis::report
{

std::string Base64(const std::string &bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	std::string text;
	text.reserve((bytes.size() + 2) / 3 * 4);
	for (size_t i = 0; i < bytes.size(); i += 3) {
		uint32_t three = 0;
		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
		text += digits[three >> 18];
		text += digits[three >> 12 & 63];
		text += i + 1 < bytes.size() ? digits[three >> 6 & 63] : '=';
		text += i + 2 < bytes.size() ? digits[three & 63] : '=';
	}
	return text;
}

} // namespace forktail::analysis::report
