extension DaemonStatus {
    /// The current or last download of a stream's stored records.
    public struct Download: Codable, Hashable, Sendable {
        public var stream: String
        /// `downloading`, `complete`, `failed` or `interrupted`.
        public var state: String
        /// The time of the last change of `state`, in RFC 3339.
        public var since: String
        /// The number of records of the current request so far, also those that are stored already.
        public var done: Int
        /// The records that the device has announced.
        public var total: Int?
        /// The number of new records of this download.
        public var new: Int
        /// The error.
        public var detail: String?

        public init(stream: String, state: String, since: Timestamp, done: Int, new: Int) {
            (self.stream, self.state, self.since) = (stream, state, since.rfc3339)
            (self.done, self.new) = (done, new)
        }

        /// The state in words: `record 812 of 1000`.
        public var words: String {
            switch state {
            case "downloading": "record \(done)" + (total.map { " of \($0)" } ?? "")
            default: state + (detail.map { ": \($0)" } ?? "") + (new > 0 ? ", \(new) new records" : "")
            }
        }
    }
}
