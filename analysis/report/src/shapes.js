// SPDX-License-Identifier: MIT
// The marks of causes: a shape per family of causes.def, so that a cause is recognized without its colour. The charts
// draw them on canvases, build.mjs puts them into the pages as SVG. A shape is polygons in a box from -10 to 10.

// A polygon with so many corners that it is a circle at a mark's size.
function round(radius) {
  const points = [];
  for (let i = 0; i < 20; i++) points.push(+(radius * Math.cos(i * Math.PI / 10)).toFixed(2), +(radius * Math.sin(i * Math.PI / 10)).toFixed(2));
  return points;
}

// The same points in the opposite order: inside another polygon it is a hole.
function hole(points) {
  const reversed = [];
  for (let i = points.length - 2; i >= 0; i -= 2) reversed.push(points[i], points[i + 1]);
  return reversed;
}

export const shapes = {
  memory: [round(8.5)],
  files: [[-7.5, -7.5, 7.5, -7.5, 7.5, 7.5, -7.5, 7.5]],
  cpu: [[0, -9.5, 9.5, 7.5, -9.5, 7.5]],
  interrupts: [[0, -10, 10, 0, 0, 10, -10, 0]],
  server: [[-3, -9, 3, -9, 3, -3, 9, -3, 9, 3, 3, 3, 3, 9, -3, 9, -3, 3, -9, 3, -9, -3, -3, -3]],
  network: [[0, 9.5, -9.5, -7.5, 9.5, -7.5]],
  client: [[0, -4, 5, -9, 9, -5, 4, 0, 9, 5, 5, 9, 0, 4, -5, 9, -9, 5, -4, 0, -9, -5, -5, -9]],
  unknown: [round(9), hole(round(5))],
};

// As the `d` of an SVG path.
export function pathOf(shape) {
  return shape.map((points) => points.map((value, i) => `${i % 2 ? ' ' : i ? 'L' : 'M'}${value}`).join('') + 'Z').join('');
}
