import FoundationEssentials
import Glibc
import TestKit
import Testing

@testable import gattherd

/// The bind keys that commands pass to profiles.
@Suite(.timeLimit(.minutes(2))) struct SenderOptionsTests {
    private let folder: TemporaryFolder
    private let library: String

    init() async throws {
        folder = try TemporaryFolder()
        let source = try String(
            contentsOf: Checkout.root.appending(path: "Plugins/Examples/garden-beacon.c"),
            encoding: .utf8
        )
        library = try await SharedLibrary.build(source, to: "garden.so", in: folder)
    }

    /// Creates each command that decodes advertisements, with a key and the native profile.
    private func creations(_ key: String) throws -> [() throws -> Void] {
        let path = try folder.write(key + "\n", to: "key")
        #expect(unsafe chmod(path, 0o600) == 0)
        let options = ["--path", library, "--key", path, "--address", "C0:FF:EE:00:00:01"]
        let decode = { (words: [String]) in try Arguments(["garden-beacon"] + words + options, for: .profileDecode) }
        return [
            { _ = try ProfileDecodeCommand(decode(["ffff", "A5 01 C4 09 07"])) },
            { _ = try AdvertisementDecodeCommand(decode(["--advertisement", "02 01 06"])) },
            { _ = try AdvertisementFileCommand(decode(["--file", "-"])) },
            { _ = try ReplayCommand(Arguments(["-", "--profile", "garden-beacon"] + options, for: .replay)) },
        ]
    }

    @Test func `a key of 24 digits is an error for a native profile`() throws {
        for create in try creations("0123456789abcdef01234567") {
            let failure = #expect(throws: CommandFailure.self) { try create() }
            #expect(failure?.code == .data)
            #expect(failure?.message?.hasSuffix("'garden-beacon' takes only keys of 32") == true)
        }
    }

    @Test func `a key of 32 digits is good for a native profile`() throws {
        for create in try creations("0123456789abcdef0123456789abcdef") {
            #expect(throws: Never.self) { try create() }
        }
    }
}
