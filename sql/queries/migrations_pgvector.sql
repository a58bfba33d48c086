create extension if not exists vector with schema public
