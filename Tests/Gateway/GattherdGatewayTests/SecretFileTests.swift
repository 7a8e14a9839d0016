import GattherdConfig
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

    @Test func `a byte order mark is no part of a secret`() throws {
        let file = SecretFile(path: try folder.write("\u{FEFF}hush\r\n", to: "secret"))
        #expect(file.firstLine?.utf8.count == 4)
        let empty = SecretFile(path: try folder.write("\u{FEFF}\r\n", to: "empty"))
        #expect(empty.blank("password") != nil)
    }

    @Test(arguments: ["", "\n", "\r\n", "\nhush\n"])
    func `a secret whose first line is empty gets a warning`(text: String) throws {
        for name in ["password", "token"] { try folder.write(text, to: name) }
        let main = """
            mqtt: {url: mqtt://localhost, username: u, password_file: password}
            influx: {url: 'http://localhost:8086', org: o, bucket: b, token_file: token}
            """
        let configuration = try ConfigurationFile(folder.write(main, to: "gattherd.yaml")).parsed()
        let findings = configuration.secretFindings.filter { $0.problem.description.contains("is empty") }
        #expect(findings.map(\.severity) == [.warning, .warning])
        #expect(SecretFile(path: try folder.write("hush", to: "full")).blank("password") == nil)
    }

    @Test(arguments: [
        (String?.none, ["cannot be read: No such file or directory"]), ("123456\n", []),
        ("hello\n", ["has no passkey; write its six digits into the first line, and nothing else"]),
    ])
    func `an unusable file of a passkey gets a warning`(text: String?, problems: [String]) throws {
        if let text {
            let pin = try folder.write(text, to: "pin")
            #expect(unsafe chmod(pin, 0o600) == 0)
        }
        let main = "devices: [{name: a, address: 'C0:FF:EE:00:00:01', pin_file: pin}]"
        let configuration = try ConfigurationFile(folder.write(main, to: "gattherd.yaml")).parsed()
        let findings = configuration.secretFindings
        #expect(findings.count == problems.count && findings.allSatisfy { $0.severity == .warning })
        for (finding, problem) in zip(findings, problems) { #expect(finding.problem.description.contains(problem)) }
    }

    @Test func `a passkey that every user can read gets a warning`() throws {
        let pin = try folder.write("123456\n", to: "pin")
        #expect(unsafe chmod(pin, 0o644) == 0)
        let main = "devices: [{name: a, address: 'C0:FF:EE:00:00:01', pin_file: pin}]"
        let configuration = try ConfigurationFile(folder.write(main, to: "gattherd.yaml")).parsed()
        #expect(configuration.secretFindings.map(\.problem.kind) == ["exposed_secret"])
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
