/* SPDX-License-Identifier: MIT */
/* `forktail doctor --json`: what doctor_print() prints, for programs, and its schema. */
#include <stdio.h>
#include <stdlib.h>

#include "common/embed.h"
#include "loader/attach.h"
#include "recorder.h"
#include "recording/json_block.h"

FT_EMBED("ft_doctor_schema", FORKTAIL_DOCTOR_SCHEMA);

extern const char ft_doctor_schema[];

static void put_feature(json_t *all, const struct feature *f)
{
	static const char *const needs[] = {
	    [NEED_REQUIRED] = "required", [NEED_PART] = "part", [NEED_EXTRA] = "extra"};
	json_t *one = json_put_object(all, NULL);
	json_put_text(one, "name", f->name);
	json_put_truth(one, "available", f->available);
	json_put_text(one, "need", needs[f->need]);
	if (f->available)
		return;
	json_put_text(one, "why", f->why);
	json_put_text(one, "without", f->without);
}

int doctor_print_json(void)
{
	static struct support s;
	char why[400];
	json_t *out = json_object();
	support_probe(&s);
	json_put_text(out, "forktail", FORKTAIL_VERSION);
	json_put_text(out, "kernel", s.kernel);
	json_put_count(out, "cpus", (uint64_t)s.cpus);
	json_t *features = json_put_array(out, "features");
	for (size_t i = 0; i < s.count; i++)
		put_feature(features, &s.features[i]);
	const bool exact = support_choose_exact(&s, EXACT_EITHER, why, sizeof why) == 0;
	json_put(out, "exact", exact ? json_string(support_exact_name(s.exact)) : json_null());
	json_put_truth(out, "requests", support_requests_error(why, sizeof why) == 0);
	const int status = support_verdict(&s, why, sizeof why);
	json_put_truth(out, "can_record", support_blocker(&s) == NULL);
	json_put_text(out, "sentence", why);
	char *text = json_line(out);
	const bool printed = text && puts(text) >= 0 && fflush(stdout) == 0;
	free(text);
	return printed ? status : 3;
}

int doctor_print_schema(void)
{
	return fputs(ft_doctor_schema, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 3;
}
