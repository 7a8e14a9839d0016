import Glibc
import TestKit
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1))) struct SecretFileTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `the lines of a secret end with LF or CR and LF`() throws {
        let file = SecretFile(path: try folder.write("hush\r\nsecond\n", to: "secret"))
        #expect(file.firstLine == "hush" && file.secondLine == "second")
        #expect(file.unreadable("password") == nil)
    }

    @Test func `a pipe, a device and a long file are refused at once`() throws {
        #expect(unsafe mkfifo(folder.file("pipe"), 0o600) == 0)
        let long = try folder.write(String(repeating: "x", count: 65_537), to: "long")
        for (path, reason) in [
            (folder.file("pipe"), "Invalid argument"), ("/dev/zero", "Invalid argument"), (long, "File too large"),
            (folder.path, "Is a directory"),
        ] {
            let file = SecretFile(path: path)
            #expect(file.firstLine == nil)
            let advice = "name a file with the password in its first line"
            #expect(file.unreadable("password") == "no password can be read from '\(path)': \(reason); \(advice)")
        }
    }
}
