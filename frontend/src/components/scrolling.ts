/** What VirtualRows takes of its library, as a chunk of its own. */

export { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
