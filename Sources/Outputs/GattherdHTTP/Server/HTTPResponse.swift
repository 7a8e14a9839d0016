/// A response to a client.
package struct HTTPResponse: Sendable {
    package enum Content: Sendable {
        case bytes([UInt8])
        /// An event stream, until the client disconnects.
        case events(EventChannel)
    }

    /// The status code of RFC 9110.
    package var status: Int
    package var headers: [Header]
    package var content: Content

    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(_ status: Int, type: String, _ bytes: [UInt8]) {
        self.status = status
        headers = [Header("Content-Type", type)]
        content = .bytes(bytes)
    }

    package init(events channel: EventChannel) {
        status = 200
        headers = [Header("Content-Type", "text/event-stream")]
        content = .events(channel)
    }

    /// Returns a response with a line of text.
    static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(status, type: "text/plain; charset=utf-8", Array((text + "\n").utf8))
    }

    /// Returns the response with one more header.
    func with(_ name: String, _ value: String) -> HTTPResponse {
        var response = self
        response.headers.append(Header(name, value))
        return response
    }
}
