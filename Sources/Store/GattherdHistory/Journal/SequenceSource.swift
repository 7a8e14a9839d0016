import GattherdLog
import GattherdModel

/// Assigns numbers to readings; outlives the database connection, so that no number is assigned twice.
final class SequenceSource {
    let file: SequenceFile
    private var numbers: SequenceNumbers

    /// Starts above all marks.
    ///
    /// - Parameters:
    ///   - path: The path of the sequence file beside the database.
    ///   - mark: The database's mark.
    ///   - log: The log for an invalid or missing sequence file.
    init(path: String, above mark: Int64, _ log: Log) {
        file = SequenceFile(path: path)
        numbers = SequenceNumbers(above: max(mark, file.mark(expecting: mark, log)))
    }

    /// The last number that was or may have been assigned.
    var last: Int64 { numbers.last }

    /// Continues above the mark of another database.
    func raise(above mark: Int64) {
        if mark > numbers.reserved { numbers = SequenceNumbers(above: mark) }
    }

    /// Reserves `count` more numbers durably.
    ///
    /// - Returns: The mark if it is new: store it in the database too, then ``adopt(_:)`` it.
    /// - Throws: ``StoreFault`` if the mark cannot be written.
    func prepare(_ count: Int) throws(StoreFault) -> Int64? {
        guard let mark = numbers.markNeeded(for: count) else { return nil }
        try file.write(mark)
        return mark
    }

    /// Records that `mark` is durable.
    func adopt(_ mark: Int64) {
        numbers.reserve(through: mark)
    }

    /// Returns the next number.
    func take() -> Int64 {
        numbers.take()
    }
}

extension SequenceFile {
    /// Returns the mark, or 0 without one; logs a missing mark that should exist.
    fileprivate func mark(expecting other: Int64, _ log: Log) -> Int64 {
        switch read() {
        case .mark(let mark): return mark
        case .missing:
            if other > 0 { log(.warning, "the sequence file is missing", [LogField("path", path)]) }
        case .garbled(let reason):
            log(.error, "the sequence file cannot be read", [LogField("path", path), LogField("reason", reason)])
        }
        return 0
    }
}
