// SPDX-License-Identifier: MIT
// The typed arrays of a report page: little-endian values in one buffer, each array aligned to 4 bytes, named
// in a JSON table. analysis/report/src/data.js reads them; docs/reference/report.md lists them.
#pragma once

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace forktail::analysis::report
{

static_assert(std::endian::native == std::endian::little, "arrays are copied in memory order");

struct ReportArrays {
	std::string bytes;
	nlohmann::json table = nlohmann::json::object(); // name -> [type, offset in bytes, elements]

	// T is uint8_t, uint16_t, uint32_t or float.
	template <typename T> void Add(const char *name, const std::vector<T> &values)
	{
		constexpr const char *type = std::is_same_v<T, float>	   ? "f32"
					     : std::is_same_v<T, uint8_t>  ? "u8"
					     : std::is_same_v<T, uint16_t> ? "u16"
									   : "u32";
		static_assert(std::is_same_v<T, float> || std::is_same_v<T, uint8_t> ||
			      std::is_same_v<T, uint16_t> || std::is_same_v<T, uint32_t>);
		bytes.resize((bytes.size() + 3) & ~size_t{3});
		table[name] = {type, bytes.size(), values.size()};
		bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
	}
};

// Standard base64 with padding (RFC 4648, section 4).
std::string Base64(const std::string &bytes);

} // namespace forktail::analysis::report
