// SPDX-License-Identifier: MIT
// Included by a file of the circle, without being in it.
