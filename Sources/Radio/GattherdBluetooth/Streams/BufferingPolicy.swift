/// The treatment of values that are not consumed in time.
public enum BufferingPolicy: Hashable, Sendable {
    /// Keeps so many of the oldest values and drops newer ones.
    case bufferingOldest(Int)
    /// Keeps so many of the newest values and drops older ones.
    case bufferingNewest(Int)

    /// The number of values that are kept; 1 at least.
    var limit: Int {
        switch self {
        case .bufferingOldest(let limit), .bufferingNewest(let limit): max(1, limit)
        }
    }
}
