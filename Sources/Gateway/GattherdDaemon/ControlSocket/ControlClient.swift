import FoundationEssentials
import Glibc

/// The command line's side of ``ControlSocket``.
public enum ControlClient {
    /// Asks the daemon at `path`, and waits for the answer.
    ///
    /// - Throws: ``ControlSocketError`` when no daemon answers there.
    public static func ask(_ call: ControlCall, at path: String) throws(ControlSocketError) -> ControlReply {
        let socket = try UnixSocket.connect(path)
        defer { close(socket) }
        guard let json = try? JSONEncoder().encode(call) else { throw ControlSocketError(path, "cannot be asked") }
        let line = Array(json) + [UInt8(ascii: "\n")]
        // A daemon that turned us away has hung up, but has said why.
        let isSent = unsafe send(socket, line, line.count, Int32(MSG_NOSIGNAL)) == line.count
        let answer = readLine(socket)
        guard isSent || !answer.isEmpty else { throw ControlSocketError(path, "the daemon does not listen") }
        guard let reply = try? JSONDecoder().decode(ControlReply.self, from: Data(answer)) else {
            throw ControlSocketError(path, "the daemon's answer is not understood; is it of another version?")
        }
        return reply
    }

    private static func readLine(_ socket: Int32) -> [UInt8] {
        var line: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while line.last != UInt8(ascii: "\n") {
            let count = unsafe recv(socket, &chunk, chunk.count, 0)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            line += chunk[..<count]
        }
        return line
    }
}
