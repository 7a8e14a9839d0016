import FoundationEssentials
import GattherdProfiles
import TestKit
import Testing

struct NativeRefusalTests {
    struct Fault: CustomTestStringConvertible {
        let macro: String
        let reason: String

        init(_ macro: String, _ reason: String) {
            self.macro = macro
            self.reason = reason
        }

        var testDescription: String { macro }
    }

    static let faults = [
        Fault("MAJOR 2", "it uses contract 2, gattherd supports contract 1"),
        Fault("MAJOR 0", "it uses contract 0, gattherd supports contract 1"),
        Fault("ENTRY gattherd_profile_v2", "it does not export gattherd_profile_v1"),
        Fault("UNWILLING 1", "it declines this version of gattherd"),
        Fault("TABLE_SIZE 12", "its table has a struct_size of 12 instead of 112"),
        Fault("NAME NULL", "its name is NULL"),
        Fault("NAME \"\"", "its name is empty"),
        Fault("NAME \"Heart Rate\"", "its name 'Heart Rate' may have only a-z, 0-9, _ and -, at most 64 characters"),
        Fault("NAME \"\\xff\"", "its name is not UTF-8"),
        Fault("NAME \"a\\nb\"", "its name has a control character"),
        Fault("SERVICES NULL", "its list of services is NULL or misaligned"),
        Fault("SERVICES (const char *const *)1", "its list of services is NULL or misaligned"),
        Fault("CHARACTERISTIC_COUNT 4000000000u", "it has 4000000000 characteristics; 0 to 256 are allowed"),
        Fault("STREAM NULL", "the stream of entry 0 of its characteristics is NULL"),
        Fault("STREAM \"a/b\"", "the stream of entry 0 of its characteristics 'a/b' may have only a-z"),
        Fault("STREAM \"availability\"", "stream 'availability' has a reserved name"),
        Fault("SECOND_STREAM \"temperature\"", "it has two streams 'temperature'"),
        Fault("UUID \"2a6\"", "the UUID of stream 'temperature' '2a6' is not a UUID"),
        Fault("UUID NULL", "the UUID of stream 'temperature' is NULL"),
        Fault("SUBSCRIPTION 9", "stream 'temperature' has the unknown subscription 9"),
        Fault("SUBSCRIPTION GATTHERD_SUBSCRIBE_POLL", "stream 'temperature' has an invalid polling period"),
        Fault("METRIC_COUNT 0", "it has 0 metrics of stream 'temperature'; 1 to 64 are allowed"),
        Fault("METRICS NULL", "its list of metrics of stream 'temperature' is NULL or misaligned"),
        Fault("METRIC \"seq\"", "metric 'seq' has a reserved name"),
        Fault(
            "METRIC_SIZE 8",
            "entry 0 of its metrics of stream 'temperature' has a struct_size of 8 instead of 40"
        ),
        Fault("KIND 44", "metric 'temperature' has the unknown kind 44"),
        Fault("CONTROL_MIN 11", "the range of control 'level' is empty"),
        Fault("ECHO \"echo\"", "control 'level' is echoed by stream 'echo', which does not exist"),
        Fault("LABELS NULL", "its list of labels of control 'mode' is NULL or misaligned"),
        Fault("CREATE NULL", "it has only one of session_create and session_destroy"),
        Fault("DECODE NULL", "it has no decode function"),
    ]

    @Test(arguments: faults)
    func `a library that violates the contract is refused with the reason`(fault: Fault) async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder, fault.macro)

        let registry = try ProfileRegistry.load(paths: [path])

        let refusal = try #require(registry.refusals.first)
        #expect(registry.profiles.isEmpty && registry.refusals.count == 1)
        #expect(refusal.path == path)
        #expect(refusal.reason.hasPrefix(fault.reason))
        #expect(refusal.description.split(separator: "\n").count == 1)
        #expect(refusal.remedy?.isEmpty == false)
    }

    @Test func `a text file named .so is refused in one line`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("this is no library\n", to: "fake.so")
        let refusals = try ProfileRegistry.load(paths: [folder.path]).refusals
        #expect(
            refusals.map(\.description) == [
                "\(path): it cannot be loaded as a shared library (file too short). "
                    + "Build it for this machine, or move it out of the folder"
            ]
        )
    }

    /// 100 octets are its header; 4000 what a copy begins with; the last octets are the table of its sections.
    @Test(arguments: [100, 4000, -1])
    func `a truncated library is refused before it is loaded`(length: Int) async throws {
        let folder = try TemporaryFolder()
        let whole = try await CPlugin.build("whole.so", in: folder)
        let octets = try [UInt8](Data(contentsOf: URL(filePath: whole)))
        let path = folder.file("half.so")
        let half = octets.prefix(length < 0 ? octets.count + length : length)
        try Data(half).write(to: URL(filePath: path))

        let registry = try ProfileRegistry.load(paths: [path])

        #expect(registry.profiles.isEmpty)
        let refusal = try #require(registry.refusals.first)
        #expect(refusal.path == path && refusal.remedy == "Copy it again, with install")
        #expect(refusal.reason.hasPrefix("it is incomplete: it has \(half.count) of "))
    }

    @Test func `headers with impossible extents are refused`() async throws {
        let folder = try TemporaryFolder()
        var octets = try [UInt8](Data(contentsOf: URL(filePath: try await CPlugin.build("whole.so", in: folder))))
        // The size in the file of the first segment.
        octets.replaceSubrange(96..<104, with: repeatElement(0xFF, count: 8))
        try Data(octets).write(to: URL(filePath: folder.file("odd.so")))
        let refusals = try ProfileRegistry.load(paths: [folder.file("odd.so")]).refusals
        #expect(refusals.map { $0.reason.hasPrefix("it is incomplete") } == [true])
    }

    @Test func `a longer text file named .so is refused`() throws {
        let folder = try TemporaryFolder()
        try folder.write(String(repeating: "this is no library\n", count: 100), to: "fake.so")
        let refusals = try ProfileRegistry.load(paths: [folder.path]).refusals
        #expect(refusals.map(\.reason) == ["it cannot be loaded as a shared library (invalid ELF header)"])
    }
}
