import GattherdModel

extension HTTPResponse {
    /// A JSON text that is complete already.
    static func json(_ octets: [UInt8], status: Int = 200) -> HTTPResponse {
        HTTPResponse(status, type: "application/json", octets)
    }

    /// An object of what `members` writes.
    static func object(status: Int = 200, _ members: (inout JSONWriter) -> Void) -> HTTPResponse {
        let octets = JSONWriter.octets { writer in
            writer.beginObject()
            members(&writer)
            writer.endObject()
        }
        return json(octets, status: status)
    }

    /// `{"error":…}`, for people.
    static func error(_ status: Int, _ words: String) -> HTTPResponse {
        object(status: status) { writer in
            writer.key("error")
            writer.string(words)
        }
    }

    /// What is not there in this way.
    static func methodNotAllowed(_ allowed: String) -> HTTPResponse {
        error(405, "use \(allowed)").with("Allow", allowed)
    }
}
