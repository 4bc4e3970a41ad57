/** The title of a finding: what to do about it. */

interface Titled { action?: string; message: string }

/** The action; the diagnosis in reports without one. */
export const actionOf = ({ action, message }: Titled): string => action || message;

/** The diagnosis, if it is not already the title. */
export const diagnosisOf = ({ action, message }: Titled): string => (action ? message : '');
