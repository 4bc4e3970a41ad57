/** The part of its library that VirtualRows uses, as a separate chunk. */

export { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
