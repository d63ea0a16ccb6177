/* SPDX-License-Identifier: MIT */
/* The ring of requests without a connection. It doubles when it is full and never shrinks. */
#include "pending_queue.h"

#include <stdlib.h>

void pending_queue_push(struct pending_queue *w, const struct pending_request *p)
{
	if (w->count == w->room) {
		uint32_t room = w->room ? w->room * 2 : 64;
		struct pending_request *grown = malloc(room * sizeof(*grown));

		if (!grown)
			abort(); /* a request lost here would never end */
		for (uint32_t i = 0; i < w->count; i++)
			grown[i] = w->ring[(w->first + i) % w->room];
		free(w->ring);
		*w = (struct pending_queue){grown, 0, w->count, room};
	}
	w->ring[(w->first + w->count++) % w->room] = *p;
}

bool pending_queue_pop(struct pending_queue *w, struct pending_request *p)
{
	if (w->count == 0)
		return false;
	*p = w->ring[w->first];
	w->first = (w->first + 1) % w->room;
	w->count--;
	return true;
}
