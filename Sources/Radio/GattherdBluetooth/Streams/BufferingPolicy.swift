/// The policy for values that are not consumed in time.
public enum BufferingPolicy: Hashable, Sendable {
    /// Keeps this number of the oldest values and drops newer ones.
    case bufferingOldest(Int)
    /// Keeps this number of the newest values and drops older ones.
    case bufferingNewest(Int)

    /// The maximum number of buffered values, at least 1.
    var limit: Int {
        switch self {
        case .bufferingOldest(let limit), .bufferingNewest(let limit): max(1, limit)
        }
    }
}
