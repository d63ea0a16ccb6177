/* SPDX-License-Identifier: MIT */
/* Embeds the schemas, which --json-schema prints. */
#include "schemas.h"

#include "common/embed.h"

FT_EMBED("ft_explain_schema", FORKTAIL_SOURCE "/analysis/text/explain.schema.json");
FT_EMBED("ft_features_schema", FORKTAIL_SOURCE "/analysis/text/features.schema.json");
FT_EMBED("ft_gate_schema", FORKTAIL_SOURCE "/analysis/compare/gate.schema.json");
FT_EMBED("ft_diff_schema", FORKTAIL_SOURCE "/analysis/compare/diff.schema.json");
FT_EMBED("ft_causes_schema", FORKTAIL_SOURCE "/cli/causes.schema.json");
FT_EMBED("ft_watch_schema", FORKTAIL_SOURCE "/live/watch/watch.schema.json");
