/// The known state of the cursor that a ``CursorKeepingSink`` keeps.
///
/// After a start or a fault the receiver is asked for it, and the journal moves there. Then entries are written. Other
/// sinks skip these steps.
struct ReceiverCursor: Sendable {
    enum State: Hashable, Sendable {
        /// The receiver must be asked.
        case unknown
        case asking
        /// The journal must go to this cursor.
        case found(Int64)
        case rewinding(Int64)
        /// The receiver's cursor is that of the machine.
        case known
    }

    /// True if the receiver keeps the cursor.
    let isKept: Bool
    private(set) var state: State
    /// The time before which the receiver is not asked again after a failure of the journal.
    private(set) var notBefore = Duration.zero
    /// The cursor must be moved over refused entries, up to this number.
    private(set) var refused: Int64?

    init(isKept: Bool) {
        self.isKept = isKept
        state = isKept ? .unknown : .known
    }

    var isKnown: Bool { state == .known }

    /// Requires a new read, because the receiver may have stored entries or been restored.
    mutating func doubt() {
        guard isKept else { return }
        (state, refused) = (.unknown, nil)
    }

    mutating func ask() { state = .asking }

    /// Records the receiver's answer.
    ///
    /// - Returns: True if it is the cursor that the machine has.
    mutating func answered(_ seq: Int64, cursor: Int64?) -> Bool {
        guard seq != cursor else {
            state = .known
            return true
        }
        (state, refused) = (.found(seq), nil)
        return false
    }

    mutating func rewind() -> [BatchMachine.Effect] {
        guard case .found(let seq) = state else { return [] }
        state = .rewinding(seq)
        return [.rewind(seq)]
    }

    /// Records that the journal is at the receiver's cursor, and returns it; `nil` if the receiver was not asked.
    mutating func rewound() -> Int64? {
        guard case .rewinding(let seq) = state else { return nil }
        state = .known
        return seq
    }

    /// Records that the journal could not go there; the receiver is asked again, because there may be a new epoch.
    mutating func rewindFailed(retryAt: Duration) {
        guard case .rewinding = state else { return }
        (state, notBefore) = (.unknown, retryAt)
    }

    /// Requires that the receiver's cursor moves over refused entries.
    mutating func refuse(through seq: Int64) {
        if isKept { refused = seq }
    }

    mutating func moved(through seq: Int64) {
        if let refused, seq >= refused { self.refused = nil }
    }
}
