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
        Fault("TABLE_SIZE 12", "its table has a struct_size of 12 instead of 136"),
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
        Fault("TASK_COUNT 65", "it has 65 tasks; 0 to 64 are allowed"),
        Fault("TASK_KIND 7", "entry 1 of its tasks has the unknown kind 7"),
        Fault("TASK_KIND GATTHERD_TASK_LISTEN", "entry 1 of its tasks only listens; it has neither bytes nor answer"),
        Fault("TASK_UUID NULL", "the UUID of entry 1 of its tasks is NULL"),
        Fault("TASK_SIZE 513", "entry 1 of its tasks has 513 bytes; at most 512 are allowed"),
        Fault("TASK_BYTES NULL", "entry 1 of its tasks has 2 bytes at NULL"),
        Fault("PATTERN NULL", "the pattern of entry 0 of its responses in the answer of control 'mode' is NULL"),
        Fault("PATTERN \"6\"", "the pattern of entry 0 of its responses in the answer of control 'mode' '6' is not"),
        Fault("RESPONSE_COUNT 0", "it has 0 responses in the answer of control 'mode'; 1 to 64 are allowed"),
        Fault("WITHIN 99", "the answer of entry 1 of its tasks has an invalid time limit: use 100 ms to 5 minutes"),
        Fault("RESUME_STREAM \"glucose\"", "the resume of entry 1 of its tasks needs the stream 'glucose'"),
        Fault("RESUME_METRIC 1", "the resume of entry 1 of its tasks needs metric 1 of stream 'temperature'"),
        Fault("RESUME_WIDTH 8", "the resume of entry 1 of its tasks has a number of 8 bytes; 1 to 7 are allowed"),
        Fault("RESUME_PREFIX_SIZE 505", "the resume of entry 1 of its tasks has 505 bytes; at most 504 are allowed"),
        Fault("TEST_COUNT 65", "it has 65 tests of stream 'temperature'; 0 to 64 are allowed"),
        Fault("TESTS NULL, NULL", "entry 0 of its tests of stream 'temperature' is NULL"),
        Fault("TESTS \"{hex: C4 09}\", NULL", "entry 1 of its tests of stream 'temperature' is NULL"),
        Fault(
            "TESTS \"{hex: C4 09}\", \"\\n\"",
            "entry 1 of its tests of stream 'temperature' has a control character"
        ),
        Fault(
            "TESTS \"{hex: C4 09}\", \"{\"",
            "test 1 of stream 'temperature': a test has either 'expect' or 'reject'"
        ),
        Fault(
            "TESTS \"{hex: C4, expect: {humidity: 1}}\", \"\"",
            "entry 1 of its tests of stream 'temperature' is empty"
        ),
        Fault(
            "TESTS \"{hex: C4, expect: {temprature: 1}}\", \"x\"",
            "test 1 of stream 'temperature': the characteristic has no metric 'temprature'; did you mean 'temperature'?"
        ),
        Fault(
            "TESTS \"{hex: C4, reject: true}\", \"x\"",
            "test 2 of stream 'temperature': a test must be a mapping of keys to values"
        ),
    ]

    static let listenerFaults = [
        Fault("SOURCE 2", "stream 'garden' has the unknown source 2"),
        Fault("SOURCE GATTHERD_SERVICE_DATA", "the UUID of stream 'garden' is NULL"),
        Fault("COMPANY 0x10000", "stream 'garden' has the impossible company 65536"),
        Fault("BEGINS \"A5 ?\"", "the beginning of stream 'garden' 'A5 ?' is not a pattern such as 80 05 ??"),
        Fault("SIZE_MAX_ 3", "the length of stream 'garden' is an empty range"),
        Fault("SILENCE 999", "the silence of stream 'garden' of 999 ms is less than 1 second"),
        Fault("RENEWAL 99999999999", "the renewal of stream 'garden' of 99999999999 ms is longer than 30 days"),
        Fault("STREAM \"availability\"", "stream 'availability' has a reserved name"),
        Fault("FRAME_SIZE 95", "entry 0 of its advertisements has a struct_size of 95 instead of 96"),
        Fault("FRAME_COUNT 65", "it has 65 advertisements; 0 to 64 are allowed"),
        Fault("FRAME_COUNT 2", "it has two streams 'garden'"),
        Fault("SERVICE_COUNT 1", "it has advertisements, so it can have no services, characteristics"),
        Fault("FRAME_COUNT 0", "it has 0 services; 1 to 64 are allowed"),
        Fault("DECODE NULL", "it has no decode function"),
        Fault(
            "TESTS \"{hex: A5, address: 1, reject: true}\"",
            "test 1 of stream 'garden': '1' is invalid; expected an address"
        ),
        Fault(
            "TESTS \"{hex: A5, address: C0:FF:EE:00:00:01, key: 0123456789abcdef01234567, reject: true}\"",
            "test 1 of stream 'garden': '0123456789abcdef01234567' is invalid; expected a bind key: 32 "
        ),
    ]

    @Test(arguments: listenerFaults)
    func `a library of advertisements that violates the contract is refused`(fault: Fault) async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder, "LISTENS", fault.macro)
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.profiles.isEmpty)
        let reason = try #require(registry.refusals.first).reason
        #expect(reason.hasPrefix(fault.reason), "\(reason)")
    }

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
