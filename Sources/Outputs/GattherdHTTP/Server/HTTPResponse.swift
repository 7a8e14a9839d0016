/// What a client gets.
public struct HTTPResponse: Sendable {
    public enum Content: Sendable {
        case octets([UInt8])
        /// What comes, as long as the client listens.
        case events(EventChannel)
    }

    /// The number of RFC 9110, "Status Codes".
    public var status: Int
    public var headers: [Header]
    public var content: Content

    public struct Header: Hashable, Sendable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    public init(_ status: Int, type: String, _ octets: [UInt8]) {
        self.status = status
        headers = [Header("Content-Type", type)]
        content = .octets(octets)
    }

    public init(events channel: EventChannel) {
        status = 200
        headers = [Header("Content-Type", "text/event-stream")]
        content = .events(channel)
    }

    /// Text for people.
    static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(status, type: "text/plain; charset=utf-8", Array((text + "\n").utf8))
    }

    /// The same answer with one more header.
    func with(_ name: String, _ value: String) -> HTTPResponse {
        var response = self
        response.headers.append(Header(name, value))
        return response
    }
}
