module hcp.internal/api

go 1.26.0
