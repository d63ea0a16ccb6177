// SPDX-License-Identifier: MIT
// See table.h.
#include "table.h"

#include <bit>

namespace forktail::analysis::exports
{

Batch::Batch(const TableKind &kind)
{
	for (const TableColumn &c : kind.columns)
		columns_.push_back({c.type, {}, {}, {}, {}});
}

void Batch::SetNames(size_t column, std::vector<std::string> names)
{
	columns_[column].names = std::move(names);
}

void Batch::Clear()
{
	for (Values &v : columns_) {
		v.numbers.clear();
		v.texts.clear();
		v.known.clear();
	}
	rows_ = 0;
}

Batch &Batch::Row()
{
	rows_++;
	at_ = 0;
	return Number(0, true);
}

Batch &Batch::Double(double value)
{
	return Number(std::bit_cast<int64_t>(value), true);
}

Batch &Batch::Name(size_t index)
{
	const bool known = index < columns_[at_].names.size();
	return Number(known ? static_cast<int64_t>(index) : 0, known);
}

Batch &Batch::Text(std::string value)
{
	return TextOr(true, std::move(value));
}

Batch &Batch::TextOr(bool known, std::string value)
{
	Values &v = columns_[at_++];
	v.texts.push_back(std::move(value));
	v.known.push_back(known);
	return *this;
}

} // namespace forktail::analysis::exports
