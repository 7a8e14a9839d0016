import CLinux
package import GattherdConfig
import GattherdGATT
package import GattherdMQTT
package import GattherdModel
import GattherdSync
import Glibc

/// A file with a secret.
package struct SecretFile {
    /// The longest file, in bytes; a secret is a line.
    private static let longest = 65_536

    package let path: String

    package init(path: String) {
        self.path = path
    }

    /// The first line; `nil` if it cannot be read.
    package var secret: Secret? { firstLine.map { Secret($0) } }

    /// The message for a file without a readable `noun`, for example a password; `nil` if it has one.
    ///
    /// With a `remedy`, the message about a missing file ends with that.
    func unreadable(_ noun: String, missing remedy: String? = nil) -> String? {
        guard case .failure(let error) = content else { return nil }
        let advice =
            switch error.code {
            case ENOENT: remedy ?? "write the \(noun) into its first line, or correct the path"
            case EACCES: "run: chgrp gattherd '\(path)' && chmod g+r '\(path)'"
            default: "name a file with the \(noun) in its first line"
            }
        return "no \(noun) can be read from '\(path)': \(error); \(advice)"
    }

    /// The message for a file whose first line, which must have a `noun`, is empty.
    func blank(_ noun: String) -> String? {
        guard firstLine?.isEmpty == true else { return nil }
        return "the first line of '\(path)' is empty; write the \(noun) into it"
    }

    package var firstLine: String? { line(0) }
    package var secondLine: String? { line(1) }

    private var content: Result<[UInt8], SystemError> {
        Result { () throws(SystemError) in try readFile(path, limit: Self.longest) }
    }

    private func line(_ number: Int) -> String? {
        guard case .success(let data) = content else { return nil }
        // Editors on Windows begin a text with a byte order mark.
        let text = data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data[...]
        let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: number + 1, omittingEmptySubsequences: false)
        guard lines.indices.contains(number) else { return nil }
        let line = lines[number]
        // Windows editors end lines with CR and LF.
        return String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
    }

    /// The warning if every user of the host can read the file.
    package var exposure: String? {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IROTH != 0 else { return nil }
        return "every user of this host can read '\(path)'; run: chmod o-rwx '\(path)'"
    }
}

/// The file with the identity resolving key of a device.
package struct IdentityKeyFile {
    private let place: Located<String>
    private let file: SecretFile

    package init(_ place: Located<String>) {
        self.place = place
        file = SecretFile(path: place.value)
    }

    package var key: IdentityKey? {
        file.firstLine.flatMap { Hexadecimal.octets($0.filter { $0 != "\r" }) }.flatMap { IdentityKey($0) }
    }

    /// The finding about the file, if any; a key that everybody can read is an error.
    package var finding: ConfigError? {
        if let exposure = file.exposure { return ConfigError(.exposedSecret(exposure), about: place) }
        if let reason = file.unreadable("identity key") { return ConfigError(.file(reason), about: place) }
        let advice = "write the identity resolving key, 32 hexadecimal digits, into its first line"
        return key == nil ? ConfigError(.file("'\(file.path)' has no identity key; \(advice)"), about: place) : nil
    }
}

/// The file with the key of a device's encrypted advertisements.
package struct BindKeyFile {
    private let place: Located<String>
    private let file: SecretFile

    package init(_ place: Located<String>) {
        self.place = place
        file = SecretFile(path: place.value)
    }

    package var key: BindKey? {
        file.firstLine.flatMap { Hexadecimal.octets($0.filter { $0 != "\r" }) }
            .flatMap { BindKey($0, remark: file.secondLine ?? "") }
    }

    /// The finding about the file, if any; a key that everybody can read is an error.
    package var finding: ConfigError? {
        if let exposure = file.exposure { return ConfigError(.exposedSecret(exposure), about: place) }
        if let reason = file.unreadable("bind key") { return ConfigError(.file(reason), about: place) }
        let advice = "write the bind key, 32 or 24 hexadecimal digits, into its first line"
        return key == nil ? ConfigError(.file("'\(file.path)' has no bind key; \(advice)"), about: place) : nil
    }
}
