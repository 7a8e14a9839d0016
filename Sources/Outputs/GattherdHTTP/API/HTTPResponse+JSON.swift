import GattherdModel

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
