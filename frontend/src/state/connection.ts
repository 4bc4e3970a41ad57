/** The state of the connection to the server. */

import { signal } from '@preact/signals';
import { ApiError, ServerGone } from '../api/client';
import type { ErrorInfo } from '../api/types.gen';

/** True from the first request without an answer until one is answered. */
export const gone = signal(false);

/** Waits for an answer and records whether there was one. */
export async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    const value = await answer;
    gone.value = false;
    return value;
  } catch (error) {
    if (error instanceof ApiError) gone.value = false;
    throw error;
  }
}

/**
 * Handles a failed request. Returns its message; null for an aborted one, and for a server that is gone, which a bar
 * reports.
 */
export function faultInfo(error: unknown): ErrorInfo | null {
  if (error instanceof ApiError) return error.info;
  if (error instanceof ServerGone) {
    gone.value = true;
    return null;
  }
  if (error instanceof DOMException && error.name === 'AbortError') return null;
  return { code: 0, message: `The page failed: ${String(error)}`, advice: 'Reload the page.' };
}
