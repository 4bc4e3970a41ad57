class RefusedError(Exception): ...

class Scanner:
    def columns(
        self, text: bytes, start: int, end: int, /
    ) -> tuple[int, list[bytes | None], list[bytes], list[list[bytes]], bytes]:
        """The events in `text[start:end]`, which are separated by commas.

        Returns:
            Their number; the int64 columns start, duration, flow and `chunks.ID_FIELDS`, None where no event has the id;
            the int32 columns phase, category, name, thread and end of the args; for each of the first four what its
            numbers stand for, as JSON, a thread as a list of `pid` and `tid`; the text of all args.

        Raises:
            RefusedError: the piece has something that only the portable decoder takes.
        """
