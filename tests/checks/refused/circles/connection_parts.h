// SPDX-License-Identifier: MIT
// What a file of the circle includes, without being in it.
