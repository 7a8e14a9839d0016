import GattherdSync
import Glibc

/// The file with the bdSeq of the last connection, as text.
///
/// A broker may publish the will of an earlier run late. With numbers that continue over restarts, hosts see that it is
/// not the death of this run. Calls block.
struct BirthSequenceFile: Sendable {
    let path: String

    /// Returns the saved number; `nil` if there is none.
    func load() -> UInt8? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 8)
        let count = unsafe read(file, &bytes, bytes.count)
        guard count > 0 else { return nil }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        return UInt8(text.prefix { $0.isNumber })
    }

    /// Replaces the number, also across a power loss; false if the file cannot be written.
    func save(_ number: UInt8) -> Bool {
        do throws(FileError) {
            let draft = try FileDraft(of: path, suffix: ".new")
            try draft.write(Array("\(number)\n".utf8))
            try draft.setMode(0o640)
            try draft.replace()
            return true
        } catch {
            return false
        }
    }
}
