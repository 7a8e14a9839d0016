import CLinux
import FoundationEssentials
package import GattherdDelivery
import Glibc

/// A file that nobody else should see.
package struct SecretFile {
    package let path: String

    package init(path: String) {
        self.path = path
    }

    /// What the first line holds; `nil` when it cannot be read.
    package var secret: Secret? { firstLine.map { Secret($0) } }

    package var firstLine: String? { line(0) }
    package var secondLine: String? { line(1) }

    private func line(_ number: Int) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        let lines = data.split(separator: UInt8(ascii: "\n"), maxSplits: number + 1, omittingEmptySubsequences: false)
        return lines.indices.contains(number) ? String(decoding: lines[number], as: UTF8.self) : nil
    }

    /// What to do when every user of the host may read it.
    package var exposure: String? {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IROTH != 0 else { return nil }
        return "every user of this host can read '\(path)'; run: chmod o-rwx '\(path)'"
    }
}
