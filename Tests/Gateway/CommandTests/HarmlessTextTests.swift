import FoundationEssentials
import GattherdModel
import Glibc
import TestKit
import Testing

@testable import gattherd

@Suite struct HarmlessTextTests {
    @Test(arguments: ["\u{1B}]0;x\u{7}", "\u{9B}31m", "\r", "\u{7F}", "\u{8}", "\u{202E}", "\u{2066}", "\u{0}"])
    func `control characters are replaced, line breaks and tabs stay`(code: String) {
        let shown = Terminal.harmlessLines("a\tb\n\(code)c 👩‍🚀 ü\n")
        #expect(shown.hasPrefix("a\tb\n\u{FFFD}") && shown.hasSuffix("c 👩‍🚀 ü\n"))
        #expect(!shown.unicodeScalars.contains { code.unicodeScalars.first == $0 })
    }

    @Test func `an output file that is a terminal receives no control characters`() throws {
        let terminal = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY)
        defer { close(terminal) }
        var (lock, number) = (Int32(0), UInt32(0))
        // TIOCSPTLCK unlocks the other end, and TIOCGPTN returns its number.
        try #require(unsafe ioctl(terminal, 0x4004_5431, &lock) == 0 && ioctl(terminal, 0x8004_5430, &number) == 0)
        let path = "/dev/pts/\(number)"
        let destination = try OutputDestination(path: path)
        #expect(destination.write("a\u{1B}[2Jb\n"))
        try destination.finish()
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(terminal, &bytes, bytes.count)
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "a\u{FFFD}[2Jb\r\n")
    }

    @Test func `an output file follows no link at the path of its draft`() throws {
        let folder = try TemporaryFolder()
        let (path, other) = (folder.file("out.csv"), try folder.write("precious", to: "other"))
        try FileManager.default.createSymbolicLink(atPath: path + ".part", withDestinationPath: other)
        let destination = try OutputDestination(path: path)
        #expect(destination.write("a,b\n"))
        #expect(!FileManager.default.fileExists(atPath: path))
        try destination.finish()
        #expect(FileManager.default.contents(atPath: path) == Data("a,b\n".utf8))
        #expect(FileManager.default.contents(atPath: other) == Data("precious".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["other", "out.csv"])
    }

    @Test func `a file that must not be replaced stays, and the refusal names the option that replaces it`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("precious", to: "out.jsonl")
        let refusal = try #require(throws: CommandFailure.self) {
            try OutputDestination(path: path, from: "FILE", replaces: false)
        }
        #expect(refusal.code == .cannotCreate)
        #expect(refusal.message == "gattherd: \(path) already exists; choose another FILE, or add --replace")
        #expect(FileManager.default.contents(atPath: path) == Data("precious".utf8))
        _ = try OutputDestination(path: "/dev/null", from: "FILE", replaces: false)
        let other = folder.file("other.jsonl")
        let destination = try OutputDestination(path: other, from: "FILE", replaces: false)
        #expect(destination.write("{}\n"))
        try destination.finish()
        #expect(FileManager.default.contents(atPath: other) == Data("{}\n".utf8))
    }

    @Test func `a formula becomes text in CSV, and numbers stay numbers`() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)"] { #expect(RowPrinter.csv(.text(text)) == "'\(text)") }
        #expect(RowPrinter.csv(.text("\tx")) == "\"'\tx\"")
        #expect(RowPrinter.csv(.text("=HYPERLINK(\"x\",1)")) == "\"'=HYPERLINK(\"\"x\"\",1)\"")
        #expect(RowPrinter.csv(.integer(-5)) == "-5" && RowPrinter.csv(.real(-0.5)) == "-0.5")
        #expect(RowPrinter.csv(.text("on")) == "on")
    }

    /// Reads one line of CSV by RFC 4180, scalar by scalar.
    private func fields(_ line: String) -> [String] {
        var (fields, isQuoted) = ([""], false)
        var scalars = Array(line.unicodeScalars)[...]
        while let scalar = scalars.popFirst() {
            if scalar == "\"", isQuoted, scalars.first == "\"" {
                fields[fields.count - 1].unicodeScalars.append(scalars.removeFirst())
            } else if scalar == "\"", isQuoted || fields[fields.count - 1].isEmpty {
                isQuoted.toggle()
            } else if scalar == ",", !isQuoted {
                fields.append("")
            } else {
                fields[fields.count - 1].unicodeScalars.append(scalar)
            }
        }
        return fields
    }

    @Test(arguments: ["x,\"\u{301},=HYPERLINK(1)", ",\u{301}=1", "\"\u{301}", "a\u{2028}b", "a\"b,c", "plain"])
    func `a text is one field of CSV, also with marks that combine with separators`(text: String) {
        #expect(fields(RowPrinter.csv(.text(text))).map { Array($0.unicodeScalars) } == [Array(text.unicodeScalars)])
    }
}
