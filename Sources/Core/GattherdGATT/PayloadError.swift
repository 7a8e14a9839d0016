/// The reason why a payload does not decode.
public enum PayloadError: Error, Hashable, Sendable {
    /// A field of `needed` octets starts at `offset`, where only `left` are left.
    case truncated(offset: Int, needed: Int, left: Int)
    /// The octets are invalid; `reason` is human-readable.
    case invalid(reason: String)
}

extension PayloadError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .truncated(let offset, let needed, let left):
            "truncated: a field at offset \(offset) needs \(needed) octet\(needed == 1 ? "" : "s"), \(left) left"
        case .invalid(let reason):
            reason
        }
    }
}
