/// What becomes of values that nobody has taken yet, when there are too many of them.
public enum BufferingPolicy: Hashable, Sendable {
    /// The oldest so many are kept, newer ones are dropped.
    case bufferingOldest(Int)
    /// The newest so many are kept, older ones are dropped.
    case bufferingNewest(Int)

    /// How many are kept; 1 at least.
    var limit: Int {
        switch self {
        case .bufferingOldest(let limit), .bufferingNewest(let limit): max(1, limit)
        }
    }
}
