import GattherdLog
import GattherdModel

/// Gives numbers to readings; outlives the database's connection, so that no number is given twice.
final class SequenceSource {
    let file: SequenceFile
    private var numbers: SequenceNumbers

    /// Begins above all marks.
    ///
    /// - Parameters:
    ///   - path: Where the mark is kept beside the database.
    ///   - mark: The database's own one.
    ///   - log: Is told when the file is not as it should be.
    init(path: String, above mark: Int64, _ log: Log) {
        file = SequenceFile(path: path)
        numbers = SequenceNumbers(above: max(mark, file.mark(expecting: mark, log)))
    }

    /// The last number that was given, or may have been.
    var last: Int64 { numbers.last }

    /// Continues above the mark of another database.
    func raise(above mark: Int64) {
        if mark > numbers.reserved { numbers = SequenceNumbers(above: mark) }
    }

    /// Makes it durable that `count` more numbers will be given.
    ///
    /// - Returns: The mark that the database should know as well, if it is a new one; ``adopt(_:)`` it then.
    /// - Throws: ``StoreFault`` when the mark cannot be written.
    func prepare(_ count: Int) throws(StoreFault) -> Int64? {
        guard let mark = numbers.markNeeded(for: count) else { return nil }
        try file.write(mark)
        return mark
    }

    /// Notes that `mark` is durable.
    func adopt(_ mark: Int64) {
        numbers.reserve(through: mark)
    }

    /// Gives a number.
    func take() -> Int64 {
        numbers.take()
    }
}

extension SequenceFile {
    /// The mark, or 0 if there is none; says so when there should be one.
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
