/* SPDX-License-Identifier: MIT */
/* The JSON Schemas of the outputs of forktail's commands. Each is a file beside the code that writes the
 * output. */
#ifndef FORKTAIL_CLI_SCHEMAS_H
#define FORKTAIL_CLI_SCHEMAS_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char ft_explain_schema[], ft_features_schema[], ft_gate_schema[], ft_diff_schema[],
    ft_watch_schema[], ft_causes_schema[];

#ifdef __cplusplus
}
#endif
#endif
