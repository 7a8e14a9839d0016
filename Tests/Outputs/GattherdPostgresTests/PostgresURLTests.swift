import Testing

@testable import GattherdPostgres

struct PostgresURLTests {
    private static func options(_ text: String) throws -> [String: String] {
        let url = try PostgresURL(text)
        let options = url.options(user: "gattherd_attic", password: "secret", authority: nil)
        return Dictionary(options.map { ($0.name, $0.value) }) { first, _ in first }
    }

    @Test func `a server that is reached through a network is verified, unless the URL says otherwise`() throws {
        let remote = try Self.options("postgresql://db.example.com/gattherd")
        #expect(remote["sslmode"] == "verify-full")
        #expect(remote["user"] == "gattherd_attic")
        #expect(try Self.options("postgresql://db.example.com/gattherd?sslmode=require")["sslmode"] == "require")
        for local in ["localhost", "127.0.0.1:5433", "[::1]", "%2Frun%2Fpostgresql", ""] {
            #expect(try Self.options("postgresql://\(local)/gattherd")["sslmode"] == nil, "\(local)")
        }
        #expect(try PostgresURL("postgresql://db.example.com/x").isVerified)
        #expect(try !PostgresURL("postgresql://db.example.com/x?sslmode=prefer").isVerified)
    }

    @Test func `a server that the environment or a service file names is verified`() throws {
        func mode(_ text: String, _ variables: [String: String]) throws -> String? {
            let url = try PostgresURL(text) { variables[$0] }
            return url.options(user: nil, password: nil, authority: nil).first { $0.name == "sslmode" }?.value
        }
        let local = "postgresql:///gattherd"
        #expect(try mode(local, [:]) == nil)
        for host in ["localhost", "127.0.0.1", "/run/postgresql", ""] {
            #expect(try mode(local, ["PGHOST": host]) == nil, "\(host)")
        }
        #expect(try mode(local, ["PGHOST": "db.example.com"]) == "verify-full")
        #expect(try mode("postgresql://localhost/gattherd", ["PGHOST": "db.example.com"]) == nil)
        #expect(try mode("postgresql://localhost/gattherd", ["PGHOSTADDR": "10.0.0.1"]) == "verify-full")
        #expect(try mode(local, ["PGSERVICE": "centre"]) == "verify-full")
        #expect(try mode("\(local)?service=centre", [:]) == "verify-full")
    }

    @Test func `of several hosts the primary is used`() throws {
        let several = try Self.options("postgresql://me@a.example.com,b.example.com:5433/gattherd")
        #expect(several["target_session_attrs"] == "read-write")
        #expect(several["user"] == "me")
        #expect(try Self.options("postgresql://a.example.com/gattherd")["target_session_attrs"] == nil)
    }

    @Test(arguments: [
        ("postgresql://me:secret@host/db", true), ("postgresql://host/db?password=secret", true),
        ("postgresql://host", false), ("mysql://host/db", false),
        ("postgresql://host/db?unknown=1", false), ("", false), ("postgresql://host/db?passfile=x&sslmod=y", false),
        ("postgresql://host/db?password=secret&sslmod=y", true),
        ("postgresql://host/db?sslmod=y&PASSWORD=secret", true),
        ("postgresql://host/db?p%61ssword=secret&sslmod=y", true), ("postgresql://host/db?pasword=secret", true),
        ("postgresql://host/db?pwd=secret", true), ("postgressql://me:secret@host/db", true),
        ("host=db.example.com password=secret dbname=db", true), ("host=db.example.com dbname=db", false),
    ])
    func `a wrong URL is refused, and a password in it named`(text: String, hasPassword: Bool) {
        let problem = #expect(throws: PostgresURL.Problem.self) { try PostgresURL(text) }
        #expect(problem?.hasPassword == hasPassword)
        #expect(problem?.text.contains("secret") == false)
    }

    @Test func `people see hosts and database, without options`() throws {
        let url = try PostgresURL("postgresql://me@a.example.com:5433/gattherd?sslmode=require")
        #expect("\(url)" == "a.example.com:5433/gattherd")
    }
}
