import GattherdModel
import GattherdSync

/// A request of a client.
package struct HTTPRequest: Hashable, Sendable {
    package enum Method: String, Hashable, Sendable, CaseIterable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
    }

    package var method: Method
    /// The decoded path, with the leading slash.
    package var path: String
    /// The arguments of the query; the first one of a repeated name.
    package var query: [String: String]
    /// The names of repeated arguments.
    package var repeated: Set<String> = []
    /// Headers by name in lower case; repeated ones are joined by commas.
    package var headers: [String: String]
    package var body: [UInt8]

    package init(
        _ method: Method,
        _ path: String,
        query: [String: String] = [:],
        headers: [String: String] = [:],
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
    }
}

/// A request without a response yet.
struct PendingHTTPRequest: Sendable {
    let exchange: UInt64
    let request: HTTPRequest
    /// True as soon as the client has closed its side of the connection.
    let hangUp: LatestValue<Bool>
}

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

    /// The type of event streams.
    static let eventStream = "text/event-stream"

    package init(events channel: EventChannel) {
        status = 200
        headers = [Header("Content-Type", Self.eventStream)]
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

extension HTTPResponse {
    /// Returns a response with a JSON text.
    static func json(_ bytes: [UInt8], status: Int = 200) -> HTTPResponse {
        HTTPResponse(status, type: "application/json", bytes)
    }

    /// Returns a response with an object whose members `members` writes.
    static func object(status: Int = 200, _ members: (inout JSONWriter) -> Void) -> HTTPResponse {
        let bytes = JSONWriter.bytes { writer in
            writer.beginObject()
            members(&writer)
            writer.endObject()
        }
        return json(bytes, status: status)
    }

    /// Returns an error for users: `{"error":…}`.
    static func error(_ status: Int, _ words: String) -> HTTPResponse {
        object(status: status) { writer in
            writer.key("error")
            writer.string(words)
        }
    }

    /// Returns the refusal of a method, with the allowed ones.
    static func methodNotAllowed(_ allowed: String) -> HTTPResponse {
        error(405, "use \(allowed)").with("Allow", allowed)
    }
}

extension HTTPResponse {
    /// The response with headers that restrict browsers: content policy, framing, caching.
    var hardened: HTTPResponse {
        var response = self
        response.headers += Self.protection
        if !headers.contains(where: { $0.name == "Cache-Control" }) {
            response.headers.append(Header("Cache-Control", "no-store"))
        }
        return response
    }

    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ]

    private static let protection = [
        Header("Content-Security-Policy", policy.joined(separator: "; ")),
        Header("Cross-Origin-Opener-Policy", "same-origin"),
        Header("Cross-Origin-Resource-Policy", "same-origin"),
        Header("Referrer-Policy", "no-referrer"),
        Header("X-Content-Type-Options", "nosniff"),
        Header("X-Frame-Options", "DENY"),
    ]
}
