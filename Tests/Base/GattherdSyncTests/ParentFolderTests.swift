import GattherdSync
import Testing

@Suite struct ParentFolderTests {
    @Test(arguments: [
        ("/var/lib/gattherd/gattherd.db", "/var/lib/gattherd"), ("data/gattherd.db", "data"), ("/gattherd.db", "/"),
        ("gattherd.db", "."),
    ])
    func `the folder of a path is never empty`(path: String, folder: String) {
        #expect(path.parentFolder == folder)
    }
}
