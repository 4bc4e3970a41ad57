/** What a finding is called: what to do about it. */

interface Titled { action?: string; message: string }

/** The action; the diagnosis in reports that have none. */
export const actionOf = ({ action, message }: Titled): string => action || message;

/** The diagnosis, where it is not the title already. */
export const diagnosisOf = ({ action, message }: Titled): string => (action ? message : '');
